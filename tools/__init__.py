"""Commands for people who work on this repository: demo, set-up of a machine, benchmarks, mutation tests.

Run them through the Makefile or as `python -m tools.NAME`. Product code never imports from here. The tools
use the product and the lab in `tests/lab`.
"""
