"""Metrics in Prometheus' text format, under the names and labels of YuniKorn.

`text` writes the format, `families` says what each metric is made of. The text is written by hand:
a usual client library refuses `yunikorn_queue_app` beside `yunikorn_queue_app_total`.
"""
