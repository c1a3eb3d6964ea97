"""Who is let in, and where the service listens at all."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("grpc")
import grpc
from calling import EXTENSION, SCHEDULER, Caller
from grpc_health.v1 import health_pb2
from tls import Certify, certificate_in

from yunikorn_actors import (
    ConnectionLost,
    InvalidRequest,
    RemoteCore,
    SchedulerCore,
    connect,
    enable_logs,
    si,
)
from yunikorn_actors.cli import main
from yunikorn_actors.service import access_policy as safety
from yunikorn_actors.service.access_policy import (
    Access,
    Tls,
    Unsafe,
    is_local,
    read_tls,
    read_token,
)
from yunikorn_actors.service.rpc import link
from yunikorn_actors.service.rpc.messages import EventsRequest
from yunikorn_actors.service.service import Serving

TOKEN = "5f4dcc3b5aa765d61d8327deb882cf99"  # noqa: S105 - of nothing
HEALTH = "/grpc.health.v1.Health/Check"
REGISTER = f"{SCHEDULER}/RegisterResourceManager"


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:3333", True),
        ("127.8.8.8:0", True),
        ("[::1]:3333", True),
        ("localhost:1", True),
        ("0.0.0.0:3333", False),
        ("[::]:3333", False),
        ("192.168.1.5:1", False),
        ("scheduler.example.com:1", False),
        ("127.0.0.1.example.com:1", False),
        (":3333", False),
        ("3333", False),
    ],
)
def test_only_the_loopback_is_local(address: str, local: bool) -> None:
    assert local == is_local(address)


@pytest.mark.parametrize(
    "access",
    [Access(), Access(token=TOKEN), Access(tls=Tls(b"", b""))],
    ids=["nothing", "a token alone", "TLS alone"],
)
def test_others_are_let_near_by_tls_and_token_together(access: Access) -> None:
    with pytest.raises(Unsafe, match=r"--grpc 0\.0\.0\.0:1: others can reach .* or --insecure"):
        access.check({"grpc": "0.0.0.0:1"})
    access.check({"grpc": "127.0.0.1:1"})
    for enough in (Access(Tls(b"", b""), TOKEN), access._replace(insecure=True)):
        enough.check({"grpc": "0.0.0.0:1"})


# -- the token


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "at least 16"), ("short", "at least 16"), ("two words " * 3, "one word"), ("ä" * 20, "ASCII")],
)  # fmt: skip
def test_a_token_is_one_long_word_and_stands_in_no_error(
    text: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(text, "utf-8")
    with pytest.raises(Unsafe, match=says) as raised:
        read_token(file)
    assert not text.strip() or text.strip() not in str(raised.value)


def test_a_token_is_read_without_what_an_editor_adds(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert TOKEN == read_token(file)
    with pytest.raises(Unsafe, match="No such file"):
        read_token(tmp_path / "none")
    with pytest.raises(Unsafe, match="at most 1024"):
        read_token(Path("/dev/zero"))


def test_with_a_token_nobody_else_is_let_in(serve: Callable[..., Serving]) -> None:
    address = serve(access=Access(token=TOKEN)).parts["grpc"].address
    request = si.RegisterResourceManagerRequest(rm_id="rm-1")
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "0", TOKEN.upper()):
        with Caller(address, token=wrong) as stranger:
            assert "UNAUTHENTICATED" == stranger.refusal(REGISTER, request)[0]
            assert "UNAUTHENTICATED" == stranger.refusal(f"{EXTENSION}/Events")[0]
            assert grpc.StatusCode.UNAUTHENTICATED == stranger.nodes().say(b"").code()
            with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
                list(stranger.calls(f"{EXTENSION}/StateDump"))
    with Caller(address, token=TOKEN) as caller:
        caller.call(REGISTER, request)
    with pytest.raises(ConnectionLost, match="UNAUTHENTICATED"):
        connect(address, token=TOKEN[1:]).start()
    with connect(address, token=TOKEN) as s:
        s.add_node("node-1", vcore=1)


def test_health_is_told_without_a_token(serve: Callable[..., Serving]) -> None:
    address = serve(access=Access(token=TOKEN)).parts["grpc"].address
    with Caller(address) as caller:
        answer = health_pb2.HealthCheckResponse.FromString(caller.call(HEALTH))
    assert health_pb2.HealthCheckResponse.SERVING == answer.status


def test_no_log_has_the_token(
    serve: Callable[..., Serving], caplog: pytest.LogCaptureFixture
) -> None:
    end = enable_logs(logging.getLogger("of the service"), "DEBUG")
    with caplog.at_level(logging.DEBUG):
        address = serve(access=Access(token=TOKEN)).parts["grpc"].address
        for token in (TOKEN, TOKEN[:-1]):
            with Caller(address, token=token) as caller:
                caller.channel.unary_unary(REGISTER).future(
                    b"\xff", metadata=caller.metadata
                ).exception()
    end()
    assert caplog.records
    assert TOKEN[:-1] not in caplog.text


# -- TLS


@pytest.fixture(scope="module")
def certificate(certify: Certify) -> tuple[Path, Path]:
    return certify()


def test_with_tls_a_client_knows_whom_it_talks_to(
    serve: Callable[..., Serving], certificate: tuple[Path, Path]
) -> None:
    tls = read_tls(*certificate)
    address = serve(access=Access(tls=tls, token=TOKEN)).parts["grpc"].address
    with connect(address, token=TOKEN, ca=certificate[0]) as s:
        s.add_node("node-1", vcore=1)
    with Caller(address, token=TOKEN) as plain:
        code, _ = plain.refusal(f"{EXTENSION}/Events", EventsRequest())
        assert "UNAVAILABLE" == code


def test_what_is_no_certificate_is_refused_with_its_file(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(Unsafe, match="give both"):
        read_tls(certificate[0], None)
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    with pytest.raises(Unsafe, match=r"other\.pem"):
        read_tls(other, certificate[1])
    assert read_tls(None, None) is None


def test_a_certificate_that_has_expired_is_refused(tmp_path: Path) -> None:
    """By whoever would serve with it, for each client would refuse it as well."""
    with pytest.raises(Unsafe, match=r"--tls-cert .*server\.pem: it has expired"):
        read_tls(*certificate_in(tmp_path, days=-1))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECT_S", 0.5)


@pytest.mark.usefixtures("impatient")
def test_a_client_says_why_it_does_not_come_to_talk(
    serve: Callable[..., Serving],
    certificate: tuple[Path, Path],
    certify: Certify,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def reason(address: str, ca: Path | None = None) -> str:
        with pytest.raises(ConnectionLost) as raised:
            RemoteCore(address, ca=ca).start()
        return str(raised.value)

    with_tls = serve(access=Access(tls=read_tls(*certificate))).parts["grpc"].address
    assert "its certificate is not trusted: `ca` names" in reason(with_tls, certify()[0])
    assert "if it has TLS, `ca` names the file" in reason(with_tls)
    assert "`ca` names a file without a certificate" in reason(with_tls, certificate[1])
    assert "ca: none.pem cannot be read: No such file" in reason(with_tls, Path("none.pem"))
    without = serve().parts["grpc"].address
    assert "it answers without TLS: leave `ca` out" in reason(without, certificate[0])
    monkeypatch.setattr(safety, "_time_fault", lambda *_: "")
    old = certificate_in(tmp_path, days=-1)
    expired = serve(access=Access(tls=read_tls(*old))).parts["grpc"].address
    assert "its certificate has expired" in reason(expired, old[0])
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        assert "what listens there says nothing" in reason(f"127.0.0.1:{port}")
    assert "is `yunikorn-actors serve` running there?" in reason(f"127.0.0.1:{port}")


def test_two_services_never_share_a_port(serve: Callable[..., Serving]) -> None:
    address = serve().parts["grpc"].address
    with pytest.raises(OSError, match=r"cannot listen on .*: Address already in use: end what"):
        Serving(SchedulerCore(), {"grpc": address}).start()


# -- certificates of clients


@pytest.fixture
def mutual(certificate: tuple[Path, Path], certify: Certify) -> tuple[Serving, tuple[Path, Path]]:
    """A service that wants to be shown a certificate, and the files of the one that it trusts."""
    own = certify()
    access = Access(tls=read_tls(*certificate, own[0]))
    serving = Serving(
        SchedulerCore(), {"grpc": "127.0.0.1:0", "rest": "127.0.0.1:0"}, access=access
    )
    return serving, own


@pytest.mark.usefixtures("impatient")
def test_a_client_shows_its_certificate_by_grpc(
    mutual: tuple[Serving, tuple[Path, Path]],
    certificate: tuple[Path, Path],
    certify: Certify,
) -> None:
    serving, (cert, key) = mutual
    with serving:
        address = serving.parts["grpc"].address
        with connect(address, ca=certificate[0], cert=cert, key=key) as s:
            s.add_node("node-1", vcore=1)
        stranger = certify()
        for own in ({}, {"cert": stranger[0], "key": stranger[1]}):
            with pytest.raises(
                ConnectionLost,
                match="if it wants a certificate of its clients, `cert` and `key` name one",
            ):
                RemoteCore(address, ca=certificate[0], **own).start()


def test_a_client_shows_its_certificate_by_rest(
    mutual: tuple[Serving, tuple[Path, Path]],
    certificate: tuple[Path, Path],
    certify: Certify,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serving, own = mutual
    with serving:
        server = ("--server", serving.parts["rest"].address, "--tls-ca", str(certificate[0]))

        def shown(cert: Path, key: Path) -> tuple[str, ...]:
            return ("--tls-cert", str(cert), "--tls-key", str(key))

        assert 0 == main(["nodes", *server, *shown(*own)])
        assert "no resource manager is registered" in capsys.readouterr().err
        assert 2 == main(["nodes", *server])
        assert 2 == main(["nodes", *server, *shown(*certify())])
        said = capsys.readouterr().err.splitlines()
        assert 2 == len(said)
        assert all(
            "if it wants a certificate of its clients, --tls-cert names one" in it for it in said
        )
        for wrong, says in (
            (("--tls-cert", str(own[0])), "give both"),
            (shown(own[1], own[0]), "no certificate with its key"),
        ):
            assert 2 == main(["nodes", *server, *wrong])
            assert says in capsys.readouterr().err
        assert 2 == main(["nodes", *server[:2], *shown(*own)])
        assert "--tls-cert: needs --tls-ca" in capsys.readouterr().err


def test_with_certificates_of_clients_no_token_is_needed(certificate: tuple[Path, Path]) -> None:
    Access(tls=read_tls(*certificate, certificate[0])).check({"grpc": "0.0.0.0:1"})
    with pytest.raises(Unsafe, match="others can reach this address"):
        Access(tls=read_tls(*certificate)).check({"grpc": "0.0.0.0:1"})


@pytest.mark.parametrize("text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nx\n"])
def test_what_signs_no_certificates_is_refused(
    text: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "clients.pem"
    file.write_text(text)
    with pytest.raises(Unsafe, match=r"--tls-client-ca .*clients\.pem: holds no certificate"):
        read_tls(*certificate, file)
    with pytest.raises(Unsafe, match="needs --tls-cert and --tls-key"):
        read_tls(None, None, file)
    with pytest.raises(Unsafe, match="No such file"):
        read_tls(*certificate, tmp_path / "none")


@pytest.mark.parametrize("files", [{"cert": "a"}, {"key": "a"}, {"cert": "a", "key": "b"}])
def test_a_certificate_of_a_client_needs_all_three_files(files: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="cert: belongs together with key and ca"):
        RemoteCore("127.0.0.1:1", **files)


def test_no_key_stands_in_a_text(certificate: tuple[Path, Path]) -> None:
    tls = read_tls(*certificate)
    assert tls is not None
    assert "PRIVATE" in str(tls.key)
    assert "PRIVATE" not in f"{tls!r} {Access(tls, TOKEN)!r}"
