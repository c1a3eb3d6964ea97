"""Which message led to which ask, allocation or application of a recording."""
