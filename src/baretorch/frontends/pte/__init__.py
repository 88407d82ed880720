"""Read ExecuTorch's .pte files without ExecuTorch; write and run them with it.

`source` is the loader. `schema` reads the flatbuffer; `reader` follows its instructions over `memory`, with `operators`
and `arguments`. `export` writes files, and `host` runs them in ExecuTorch's own runtime.
"""
