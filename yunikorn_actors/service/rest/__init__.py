"""REST: the routes of YuniKorn, and our own beside them, answered by the read side.

`routes` says which there are; `yunikorn` and `own` answer them and know nothing of HTTP; `guard`
says who may ask; `server` alone knows the web server.
"""
