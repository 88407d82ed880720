import torch


def inputs():
    return (torch.ones(1, 4),)
