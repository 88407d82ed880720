"""Exercise 2: the kinks of a hidden layer with four units."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
weight, bias = net[0].weight[:, 0].double(), net[0].bias.double()
kinks = (-bias / weight).sort().values
print(f"{len(kinks)} kinks, {len(kinks) + 1} pieces")

# Between two kinks the slope is constant: compare it at a quarter and in the middle of each piece.
ends = torch.cat([kinks[:1] - 1, kinks, kinks[-1:] + 1])
x = torch.cat([ends[:-1] + (ends[1:] - ends[:-1]) * part / 4 for part in (1, 2)]).unsqueeze(1).requires_grad_()
(slope,) = torch.autograd.grad(net.double()(x).sum(), x)
first, second = slope.reshape(2, -1)
changed = int(((first - second).abs() > 1e-12).sum())
print(f"slopes that change within a piece: {changed}")
assert len(kinks) == 4 and changed == 0
