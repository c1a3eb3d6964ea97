"""The service for clients in any language: gRPC, by the protocols `si.proto` and `extension.proto`.

Bytes become typed messages at once (`protobuf`), and from there on nothing knows of the wire. One
event loop serves all streams (`server`); the core speaks to each resource manager through an
`Outlet`, where what it has not read waits.
"""
