"""Run images on QEMU's machines, with an emulated NPU attached from outside."""
