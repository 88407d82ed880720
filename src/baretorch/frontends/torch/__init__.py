"""Export PyTorch modules, and convert their programs to plain programs that frontends/aten/ reads.

The way of a module, in the order of the modules: `source` starts each step; `attributes` calls the module and rejects
lost state, with `snapshot` and `contents`; `exportable` prepares it for torch.export, which `export` calls; `plain`
makes a plain program, without control flow (`control_flow`); `constants` evaluates what depends on parameters only;
`state` compares buffers call by call; `read` returns the ATen program. `calls` runs the user's code, in `modes` that
make its results comparable, and `notices` collects warnings. `norms` is for `.pte` files.
"""
