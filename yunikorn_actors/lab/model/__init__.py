"""The rules of scheduling a second time: a slow scheduler without any index.

It shares no decision code with the core. The facts of a run are followed one by one, and each
decision is judged on the cluster as it stood right before it.
"""
