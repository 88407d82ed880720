"""Export PyTorch modules, and turn their programs into plain programs that frontends/aten/ reads."""
