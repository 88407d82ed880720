"""Export PyTorch modules, and convert their programs to plain programs that frontends/aten/ reads."""
