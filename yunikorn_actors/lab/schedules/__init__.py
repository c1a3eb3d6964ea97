"""What chooses the order of a run: strategies, faults, a recording, threads."""
