"""The demo: workers are killed and paused in the middle of their work, and no message is lost.

`command` is what the user calls, `plot` what happens, `crew` the processes it happens to (`producer` and `worker`), `screen` what is seen
of it, and `tally` what the store says in the end. `parts` is what the processes tell each other.
"""
