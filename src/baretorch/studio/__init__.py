"""A page of this computer's own, on which people draw and move sliders, and a chip, emulated or real, answers."""
