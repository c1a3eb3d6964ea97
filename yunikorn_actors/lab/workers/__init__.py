"""Where many runs are played at once: processes and Dask."""
