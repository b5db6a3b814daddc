"""The paper, from one command: `python -m experiments` (`make paper`) computes, draws and writes all of it."""
