"""nn.Module -> the same module in int8, by torchao's pt2e flow."""
