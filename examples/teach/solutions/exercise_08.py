"""Exercise 8: int8 by hand: scale, zero point, and the largest rounding error."""

import numpy as np

low, high = -0.5, 1.5
values = np.linspace(low, high, 1001)

scale = (high - low) / 255  # 256 steps have 255 distances
zero = round(-128 - low / scale)
stored = np.clip(np.round(values / scale) + zero, -128, 127).astype(np.int8)
back = scale * (stored.astype(np.int32) - zero)
error = np.abs(back - values).max()

print(f"scale {scale:.6f}, zero point {zero}")
print(f"largest error {error:.6f}, half a step is {scale / 2:.6f}")
assert back[np.argmin(np.abs(values))] == 0, "0.0 must be exact: padding and ReLU produce it"
assert error < scale / 2 + 1e-9
