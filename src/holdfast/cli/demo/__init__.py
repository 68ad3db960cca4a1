"""The demo: workers are killed and paused in the middle of their work, and no message is lost.

`command` is what the user calls, `run` what happens, `processes` those it happens to (`producer` and `worker`), `progress` and `output`
what is seen of it, and `counts` what the store says in the end. `protocol` is what the processes tell each other.
"""
