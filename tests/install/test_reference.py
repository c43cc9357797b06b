"""The text that names a source is read by a closed grammar, without a look at the network or the disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf.core.environment import Environment
from skillshelf.errors import ConfigurationError, SourceRefused
from skillshelf.install.reference import SourceKind, SourceReference, parse_reference

HERE = Environment("/srv/project/sub", "/home/me", {})
ROOT = "/srv/project"
DIGEST = f"sha256:{'0' * 64}"
COMMIT = "0123456789abcdef" * 2 + "01234567"
GITHUB: tuple[SourceKind, str, str] = ("git", "git+https://github.com/o/r", "https://github.com/o/r")
HOSTED: tuple[SourceKind, str, str] = ("git", "git+https://host/a", "https://host/a")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("./pdf", SourceReference("folder", "./sub/pdf", "/srv/project/sub/pdf")),
        (".", SourceReference("folder", "./sub", "/srv/project/sub")),
        ("..", SourceReference("folder", ".", "/srv/project")),
        ("../pdf/", SourceReference("folder", "./pdf", "/srv/project/pdf")),
        ("../../other", SourceReference("folder", "../other", "/srv/other")),
        ("/opt/pdf", SourceReference("folder", "/opt/pdf", "/opt/pdf")),
        ("/srv/project/pdf", SourceReference("folder", "./pdf", "/srv/project/pdf")),
        ("~/pdf", SourceReference("folder", "/home/me/pdf", "/home/me/pdf")),
        ("~", SourceReference("folder", "/home/me", "/home/me")),
        ("./-x", SourceReference("folder", "./sub/-x", "/srv/project/sub/-x")),
        ("./a b@c#d", SourceReference("folder", "./sub/a b@c#d", "/srv/project/sub/a b@c#d")),
        ("./pdf.zip", SourceReference("archive", "./sub/pdf.zip", "/srv/project/sub/pdf.zip")),
        ("./pdf.SKILL", SourceReference("archive", "./sub/pdf.SKILL", "/srv/project/sub/pdf.SKILL")),
        ("~/pdf.tar.gz", SourceReference("archive", "/home/me/pdf.tar.gz", "/home/me/pdf.tar.gz")),
        ("/pdf.tgz", SourceReference("archive", "/pdf.tgz", "/pdf.tgz")),
        ("./pdf.zip/", SourceReference("folder", "./sub/pdf.zip/", "/srv/project/sub/pdf.zip/")),
        ("o/r", SourceReference(*GITHUB)),
        ("o/r.git", SourceReference(*GITHUB)),
        ("o/r/skills/pdf", SourceReference(*GITHUB, "skills/pdf")),
        ("o/r@v1", SourceReference(*GITHUB, "", "v1")),
        ("o/r/skills/pdf@feature/x", SourceReference(*GITHUB, "skills/pdf", "feature/x")),
        (f"o/r@{COMMIT}", SourceReference(*GITHUB, "", COMMIT)),
        ("git+https://Host:443/a", SourceReference(*HOSTED)),
        ("git+https://host/a/", SourceReference(*HOSTED)),
        ("git+https://host/a@v1#b/c", SourceReference(*HOSTED, "b/c", "v1")),
        ("git+https://host/a#b@c", SourceReference(*HOSTED, "b@c")),
        (
            "git+https://host:8443/a%20b",
            SourceReference("git", "git+https://host:8443/a%20b", "https://host:8443/a%20b"),
        ),
        ("git+ssh://git@host/a@v1", SourceReference("git", "git+ssh://git@host/a", "ssh://git@host/a", "", "v1")),
        ("git+ssh://host:2222/~me/a", SourceReference("git", "git+ssh://host:2222/~me/a", "ssh://host:2222/~me/a")),
        ("git+file:///srv/a.git@v1", SourceReference("git", "git+file:///srv/a.git", "file:///srv/a.git", "", "v1")),
        (
            "git+http://127.0.0.1:8080/a",
            SourceReference("git", "git+http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a"),
        ),
        ("git+http://[::1]/a", SourceReference("git", "git+http://[::1]/a", "http://[::1]/a")),
        ("https://Example.org", SourceReference("site", "https://example.org", "https://example.org")),
        ("https://example.org/docs/", SourceReference("site", "https://example.org/docs", "https://example.org/docs")),
        ("http://localhost:80", SourceReference("site", "http://localhost", "http://localhost")),
        ("oci://ghcr.io/a/b", SourceReference("oci", "oci://ghcr.io/a/b", "ghcr.io/a/b")),
        ("oci://ghcr.io/a/b:1.0", SourceReference("oci", "oci://ghcr.io/a/b", "ghcr.io/a/b", "", "1.0")),
        (
            f"oci://localhost:5000/b@{DIGEST}",
            SourceReference("oci", "oci://localhost:5000/b", "localhost:5000/b", "", DIGEST),
        ),
        ("mcp:label/pdf", SourceReference("mcp", "mcp:label/pdf", "label", "", None, "pdf")),
        ("mcp:label/acme/pdf", SourceReference("mcp", "mcp:label/acme/pdf", "label", "", None, "acme/pdf")),
        ("mcp:label", SourceReference("mcp", "mcp:label", "label")),
        ("plugin:o/r/p", SourceReference("plugin", "plugin:git+https://github.com/o/r/p", GITHUB[1], "", None, "p")),
        (
            "plugin:o/r@f/x/p",
            SourceReference("plugin", "plugin:git+https://github.com/o/r/p", GITHUB[1], "", "f/x", "p"),
        ),
        (
            "plugin:git+https://host/a@v1/p",
            SourceReference("plugin", "plugin:git+https://host/a/p", HOSTED[1], "", "v1", "p"),
        ),
        ("plugin:./m/p", SourceReference("plugin", "plugin:./sub/m/p", "/srv/project/sub/m", "", None, "p")),
        ("plugin:./p", SourceReference("plugin", "plugin:./sub/p", "/srv/project/sub", "", None, "p")),
        ("plugin:../p", SourceReference("plugin", "plugin:./p", "/srv/project", "", None, "p")),
        ("plugin:/opt/m/p", SourceReference("plugin", "plugin:/opt/m/p", "/opt/m", "", None, "p")),
    ],
)
def test_a_source_means_one_thing_and_comes_back_from_a_lock(text: str, found: SourceReference) -> None:
    assert parse_reference(text, HERE, root=ROOT) == found
    elsewhere = HERE._replace(cwd="/elsewhere")
    again = parse_reference(found.canonical, elsewhere, path=found.path, ref=found.ref, base=ROOT, root=ROOT)
    assert again == found


@pytest.mark.parametrize("text", ["./pdf", "../pdf", "~/pdf", "./pdf.zip", "plugin:./m/p"])
def test_without_a_project_a_folder_is_absolute(text: str) -> None:
    found = parse_reference(text, HERE)
    assert "/./" not in found.canonical
    assert found.canonical.removeprefix("plugin:").startswith("/")
    again = parse_reference(found.canonical, HERE._replace(cwd="/"), path=found.path, ref=found.ref)
    assert again == found


def test_options_say_the_same_as_the_text() -> None:
    assert parse_reference("o/r", HERE, path="a/b/", ref="v1") == parse_reference("o/r/a/b@v1", HERE)
    assert parse_reference("o/r@v1", HERE, ref="v1") == parse_reference("o/r@v1", HERE)
    with pytest.raises(ConfigurationError, match="--ref another"):
        parse_reference("o/r@v1", HERE, ref="v2")
    with pytest.raises(ConfigurationError, match="--path another"):
        parse_reference("o/r/a", HERE, path="b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a source"),
        ("pdf", "not a source"),
        ("pdf.zip", "not a source"),
        ("-o/r", "not a source"),
        ("o/-r", "not a source"),
        ("o/..", "not a source"),
        ("o o/r", "not a source"),
        ("git@github.com:o/r", "did you mean git+ssh://git@github.com/o/r?"),
        ("ssh://host/a", "did you mean git+ssh://host/a?"),
        ("file:///etc", "did you mean git+file:///etc?"),
        ("git://host/a", "not a source"),
        ("ftp://host/a", "not a source"),
        ("https://github.com/o/r", "did you mean git+https://github.com/o/r?"),
        ("https://host/a.git", "did you mean git+https://host/a.git?"),
        ("https://", "not a host"),
        ("https://-x/", "not a host"),
        ("https://host:99999/", "not a host"),
        ("https://host/a#b", "no part after #"),
        ("https://host/a?b=c", "no part after ?"),
        ("https://ho st/", "not a host"),
        ("https://host/<a>", "cannot have"),
        ("git+https://host", "has a path"),
        ("git+https://host/", "has a path"),
        ("git+ssh://-oProxyCommand=id/a", "not a host"),
        ("git+ssh://-l@host/a", "not a host"),
        ("git+file://host/a", "git+file:///path"),
        ("oci://ghcr.io/A/b", "a registry is"),
        ("oci://ghcr.io/", "a registry is"),
        (f"oci://ghcr.io/a:1@{DIGEST}", "a registry is"),
        ("mcp:", "mcp:LABEL/NAME"),
        ("mcp:a b/c", "mcp:LABEL/NAME"),
        ("mcp:a/", "mcp:LABEL/NAME"),
        ("plugin:p", "plugin:MARKETPLACE/PLUGIN"),
        ("plugin:o/r/", "plugin:MARKETPLACE/PLUGIN"),
        ("plugin:o/p", "not a source"),
        ("plugin:o/r/sub/p", "a marketplace is"),
        ("plugin:https://host/p", "a marketplace is"),
        ("plugin:./a.zip/p", "a marketplace is"),
        ("./a" * 2000, "characters"),
    ],
)
def test_a_text_outside_the_grammar_is_wrong_usage(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_reference(text, HERE)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["./a", "https://host", "mcp:a/b"])
def test_a_source_without_versions_takes_no_ref(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no versions"):
        parse_reference(text, HERE, ref="v1")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("https://me:s3cret@host/", "secret-in-url"),
        ("https://s3cret@host/", "secret-in-url"),
        ("git+https://s3cret@host/a", "secret-in-url"),
        ("git+https://me:s3cret@host/a", "secret-in-url"),
        ("git+https://:s3cret@host/a", "secret-in-url"),
        ("git+ssh://me:s3cret@host/a", "secret-in-url"),
        ("git+http://s3cret@127.0.0.1/a", "secret-in-url"),
        ("oci://me:s3cret@host/a", "secret-in-url"),
        ("https://host/?token=s3cret", "secret-in-url"),
        ("https://host/a?x=1&access_token=s3cret", "secret-in-url"),
        ("git+https://host/a?private_key=s3cret", "secret-in-url"),
        ("https://host/a;token=s3cret", "secret-in-url"),
        ("git+https://host/a;token=s3cret", "secret-in-url"),
        ("plugin:git+https://s3cret@host/a/p", "secret-in-url"),
        ("http://host/", "plain-http"),
        ("http://127.0.0.1.example.org/", "plain-http"),
        ("http://10.0.0.1/", "plain-http"),
        ("git+http://host/a", "plain-http"),
        ("git+git://host/a", "transport"),
        ("git+ext::sh -c id", "transport"),
        ("git+ftp://host/a", "transport"),
        ("ext::sh -c id", "transport"),
        ("fd::3", "transport"),
        ("git+./a", "transport"),
        ("git+https://host/../a", "path-escape"),
        ("git+https://host/%2e%2e/a", "path-escape"),
        ("git+https://host/a%0d%0ab", "path-escape"),
        ("o/r/../../x", "path-escape"),
        ("git+https://host/a#../x", "path-escape"),
        ("git+https://host/a#/etc", "path-escape"),
        ("o/r/-x", "path"),
        ("o/r/.git/hooks", "path"),
        ("o/r/a\\b", "path"),
        ("o/r/con", "path"),
        ("o/r/" + "/".join("a" * 33), "path"),
        ("o/r@--upload-pack=id", "ref"),
        ("o/r@", "ref"),
        ("o/r@a..b", "ref"),
        ("o/r@a:b", "ref"),
        ("o/r@+a", "ref"),
        ("o/r@^a", "ref"),
        ("o/r@a@{1}", "ref"),
        ("o/r@a.lock", "ref"),
        ("o/r@a/.b", "ref"),
        ("o/r@a//b", "ref"),
        ("o/r@/a", "ref"),
        ("o/r@a/", "ref"),
        ("o/r@a.", "ref"),
        ("o/r@a b", "ref"),
        ("o/r@a*", "ref"),
        ("o/r@@", "ref"),
        ("o/r@" + "a" * 300, "ref"),
        ("oci://ghcr.io/a:-x", "ref"),
        (f"oci://ghcr.io/a@sha512:{'0' * 128}", "ref"),
        (f"oci://ghcr.io/a@sha256:{'A' * 64}", "ref"),
        ("mcp:a/../b", "path-escape"),
        ("./a\n", "control-character"),
        ("o/r@a\x1b[2J", "control-character"),
        ("https://host/\0", "control-character"),
        ("o/r\u2028", "control-character"),
    ],
)
def test_a_source_that_must_not_be_used_is_refused_by_its_rule(text: str, rule: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        parse_reference(text, HERE)
    assert caught.value.rule == rule
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).isprintable()


PARTS = [*"aAz09./@#:+-_~?&=% \\\x1b", "git+", "://", "https", "ssh", "oci", "mcp:", "plugin:", ".."]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_any_text_is_a_source_that_comes_back_or_one_error(text: str) -> None:
    try:
        found = parse_reference(text, HERE, root=ROOT)
    except (ConfigurationError, SourceRefused) as refused:
        said = str(refused)
    else:
        again = parse_reference(found.canonical, HERE, path=found.path, ref=found.ref, base=ROOT, root=ROOT)
        assert again == found
        said = found.canonical
    assert said.isprintable()


@pytest.mark.parametrize(
    "text", ["me:s3cret@host:a", "https:/me:s3cret@host/a", "https://host/a#s3cret", "ssh://me:s3cret@host/a"]
)
def test_a_mistyped_source_is_named_without_what_may_be_a_password(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_reference(text, HERE)

    assert "host" in str(caught.value)
    assert "s3cret" not in str(caught.value)
