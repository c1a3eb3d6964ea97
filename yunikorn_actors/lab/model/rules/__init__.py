"""The rules of scheduling a second time, in plain functions of the cluster as it stands.

No index, nothing remembered from one fact to the next, and nothing of the planner: each module
answers questions about one noun.
"""
