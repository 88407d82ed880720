"""baretorch completion: print a shell script that completes verbs, options and boards."""

from __future__ import annotations

import click

from baretorch.cli.verb import Answer, verb, whole_lines


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(as_json: bool, shell: str) -> Answer:
    """Print the shell's completion script.

    For bash: eval "$(baretorch completion bash)"
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "baretorch", "_BARETORCH_COMPLETE").source()
    return Answer({"shell": shell, "script": script}, whole_lines(script))
