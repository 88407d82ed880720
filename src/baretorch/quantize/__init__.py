"""Source -> the same in int8. torchao is only for training in int8: qat.py, quantizer.py, torchao.py."""
