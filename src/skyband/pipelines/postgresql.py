"""The address of a PostgreSQL sink, and its options: JDBC's names, and what libpq calls the same.

The sink was written over JDBC once, and files say `jdbc:postgresql:…` with JDBC's options. psycopg, which writes it
now, connects by libpq's names, which may be used as well.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, unquote_plus

JDBC: Final = "jdbc:postgresql:"
_OWN: Final = ("postgresql://", "postgres://")  # libpq's own addresses

_LIBPQ: Final = (
    *("user", "password", "passfile", "host", "hostaddr", "port", "dbname", "service", "options", "application_name"),
    *("connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    *("tcp_user_timeout", "target_session_attrs", "load_balance_hosts", "require_auth", "channel_binding"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "sslsni", "ssl_min_protocol_version"),
    *("gssencmode", "krbsrvname", "client_encoding"),
)
_RENAMED: Final = {
    "applicationname": "application_name",
    "channelbinding": "channel_binding",
    "connecttimeout": "connect_timeout",
    "gssencmode": "gssencmode",
    "kerberosservername": "krbsrvname",
    "logintimeout": "connect_timeout",
}
_SERVERS: Final = {"any": "any", "primary": "primary", "master": "primary"}
# How JDBC brings rows to a database. Nothing is left of it, and no answer depends on it.
_WITHOUT_EFFECT: Final = (
    *("batchsize", "fetchsize", "numpartitions", "isolationlevel", "driver", "rewritebatchedinserts"),
    *("preparethreshold", "preparedstatementcachequeries", "preparedstatementcachesizemib", "binarytransfer"),
    *("defaultrowfetchsize", "stringtype", "autosave", "preferquerymode", "loggerlevel", "cancelsignaltimeout"),
)
_KNOWN: Final = (*(*_LIBPQ, *_RENAMED, *_WITHOUT_EFFECT), *("ssl", "tcpkeepalive", "targetservertype", "currentschema"))
_REFUSED: Final = {
    "mode": "rows are inserted or replaced by their key, whatever the mode: leave it out",
    "truncate": "rows are inserted or replaced by their key: leave it out",
    "url": 'the address is a key of the sink: url = "…"',
    "dbtable": 'the table is a key of the sink: table = "…"',
    "query": 'the table is a key of the sink: table = "…"',
    "createtablecolumntypes": "create the table with these types before the first run, and leave it out",
    "createtableoptions": "create the table with these options before the first run, and leave it out",
    "sessioninitstatement": 'settings of a connection are libpq\'s: options = "-c name=value"',
    "querytimeout": 'write options = "-c statement_timeout=30s"',
    "sockettimeout": 'write tcp_user_timeout = 30000, in milliseconds, or options = "-c statement_timeout=30s"',
    "sslfactory": 'write sslmode = "require", "verify-ca" or "verify-full"',
}


def is_address(url: str) -> bool:
    return url.startswith((JDBC, *_OWN))


def refused(url: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options that a sink cannot have, also in its address, each with the line to write instead."""
    for name, value in (_in_address(url) | {**options}).items():
        known = name.lower()
        if known in _REFUSED:
            yield name, f"A PostgreSQL sink has no option {name!r}: {_REFUSED[known]}."
        elif known == "targetservertype" and "$" not in value and value.lower() not in _SERVERS:
            yield name, f'{name} = {value!r}: Skyband writes only to a primary: {name} = "primary".'
        elif known not in _KNOWN:
            near = difflib.get_close_matches(known, (*_LIBPQ, *_RENAMED), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            yield name, f"A PostgreSQL sink has no option {name!r}.{hint} It takes libpq's: {', '.join(_LIBPQ)}."


def connection(url: str, options: Mapping[str, str]) -> dict[str, str]:
    """What psycopg connects with; names that `refused` names are left out.

    >>> connection("jdbc:postgresql://db:5433/sales?ssl=true", {"user": "me", "batchsize": "1000"})
    {'host': 'db', 'port': '5433', 'dbname': 'sales', 'sslmode': 'verify-full', 'user': 'me'}
    >>> connection("jdbc:postgresql:sales", {"currentSchema": "best"})
    {'host': 'localhost', 'dbname': 'sales', 'options': '-csearch_path=best'}
    >>> connection("postgresql://db/sales", {"ApplicationName": "market"})
    {'conninfo': 'postgresql://db/sales', 'application_name': 'market'}
    """
    if not url.startswith(JDBC):
        return {"conninfo": url} | _as_libpq(options)
    place, _, _ = url.removeprefix(JDBC).partition("?")
    return _place(place) | _as_libpq(_in_address(url) | {**options})


def _in_address(url: str) -> dict[str, str]:
    """What stands behind the question mark of a JDBC address; libpq reads its own."""
    _, _, asked = url.partition("?") if url.startswith(JDBC) else ("", "", "")
    pairs = (part.partition("=") for part in asked.split("&") if part)
    return {unquote_plus(name): unquote_plus(value) for name, _, value in pairs}


def _place(text: str) -> dict[str, str]:
    """Hosts, ports and database in //one:5432,two:5433/sales, or sales alone."""
    hosts, _, database = text.removeprefix("//").rpartition("/") if text.startswith("/") else ("", "", text)
    found = [re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", part) for part in hosts.split(",")]
    named = [(one[1].strip("[]") or "localhost", one[2] or "") for one in found if one is not None]
    place = {"host": ",".join(host for host, _ in named)}
    if any(port for _, port in named):
        place["port"] = ",".join(port or "5432" for _, port in named)
    return place | ({"dbname": unquote(database)} if database else {})


def _as_libpq(options: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower(): value for name, value in options.items()}
    settings: dict[str, str] = {}
    if given.get("ssl", "false").lower() != "false":  # JDBC's way to ask for all of it
        settings["sslmode"] = "verify-full"
    if "tcpkeepalive" in given:
        settings["keepalives"] = "1" if given["tcpkeepalive"].lower() == "true" else "0"
    if "targetservertype" in given:
        settings["target_session_attrs"] = _SERVERS.get(given["targetservertype"].lower(), "any")
    for name, value in given.items():
        if name in _LIBPQ or name in _RENAMED:
            settings[_RENAMED.get(name, name)] = value
    if "currentschema" in given:
        schema = re.sub(r"([\\ ])", r"\\\1", given["currentschema"])
        settings["options"] = f"{settings.get('options', '')} -csearch_path={schema}".strip()
    return settings
