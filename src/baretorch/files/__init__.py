"""Files of the user and of Baretorch: safe reading, atomic writing, and which files may be overwritten."""
