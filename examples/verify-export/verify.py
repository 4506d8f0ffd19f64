#!/usr/bin/env python3
"""Verifies an export of the audit trail, as docs/audit.md describes it (Formats of the export).

    python3 verify.py exports/ [--jwks keys.json]

Names folders or files, of a part of the chain without a gap. Prints the findings, and exits with 1 if there are any.
Signatures need the package `cryptography`; everything else is in the standard library of Python 3.9 or later.
"""

import base64
import hashlib
import json
import re
import sys
from pathlib import Path

GENESIS = "A" * 43
STATED = ("partition", "seq", "kind", "hash", "time_ms")  # what a signature covers
MEMBERS = {
    "block": {"first_seq", "last_seq", "previous_hash", "hash"},
    "entry": {"seq", "text"},
    "checkpoint": {*STATED, "signature"},
}
NAME = re.compile(r"(\d{15})-(\d{15})\.ndjson")
FORM = re.compile(r"[A-Za-z0-9_-]{43}")  # of commitments and salts
CALLER = ("issuer subject client tenant token_id_hash api_key grants fields request_id trace_id address").split()
GROUPS = [(CALLER, "salt", "commitment"), (["change"], "change_salt", "change_commitment")]
AFTER_ERASURE = {"request_id": "", "trace_id": "", "address": "erased"}
LATER_COLUMNS = set(
    "observed rejected host origin call api_key grants fields v salt commitment change_salt "
    "change_commitment erasure".split()
)
ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def has_form(value):
    return isinstance(value, str) and FORM.fullmatch(value) is not None


def members(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member is repeated")
    return dict(pairs)


def integer(text):
    if abs(int(text)) >= 2**53:
        raise ValueError(f"a number that is too large: {text}")
    return int(text)


def no_fraction(text):
    raise ValueError(f"a number that is no integer: {text}")


def no_json(text):
    raise ValueError(f"a constant that JSON does not have: {text}")


def json_in(text):
    return json.loads(text, object_pairs_hook=members, parse_float=no_fraction, parse_int=integer)


def object_in(text):
    """Returns the object in a text that may be no JSON."""
    try:
        value = json.loads(text, parse_int=float, parse_constant=no_json)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def json_of(value):
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    escaped = (ESCAPES.get(ord(c)) or (f"\\u{ord(c):04x}" if ord(c) < 32 else c) for c in value)
    return '"' + "".join(escaped) + '"'


def canonical(columns):
    return "{" + ",".join(f"{json_of(name)}:{json_of(columns[name])}" for name in sorted(columns)) + "}"


class Chain:
    def __init__(self):
        self.findings = []
        self.first = self.last = self.hash = None
        self.hashes = {}  # of the row or the block that ends with a seq
        self.events = 0
        self.checkpoints = []
        self.begin = None  # the checkpoint before the first event
        self.block, self.texts = None, []
        self.is_later = False  # a row with v 2, or a block, was read
        self.unproven = None  # an erased row of the first format without a successor that is whole
        self.old_erased = []  # erased rows of the first format
        self.signed = []  # the seq of each checkpoint with a valid signature
        self.erased, self.begun, self.done = {}, set(), {}

    def must(self, is_right, seq, what):
        if not is_right:
            self.findings.append((seq, what))

    def line(self, member, value):
        if member in MEMBERS:
            self.must(set(value) == MEMBERS[member], self.last, f"the members of a line: {member}")
        if member == "entry":
            self.entry(value["seq"], value["text"])
            return
        self.end_block()
        if member == "block":
            self.link(value["first_seq"], value["previous_hash"])
            self.begin_later(value["first_seq"])
            self.block = value
        elif member == "event":
            self.link(value["seq"], value["previous_hash"])
            self.row(value)
        elif member == "checkpoint":
            self.checkpoint(value)
        else:
            self.must(False, self.last, f"an unknown line: {member}")

    def link(self, seq, previous):
        if self.last is not None:
            self.must(seq == self.last + 1, seq, "a seq is missing or repeated")
            self.must(previous == self.hash, seq, "previous_hash is not that of the one before")
            return
        self.first = seq
        if seq == 1:
            self.must(previous == GENESIS, seq, "the chain does not begin with GENESIS")
        else:
            is_known = self.begin is not None and self.begin["seq"] == seq - 1
            self.must(is_known and self.begin["hash"] == previous, seq, "what is before it is not in the export")

    def ends(self, seq, hash_):
        self.last, self.hash = seq, hash_
        self.hashes[seq] = hash_

    def begin_later(self, seq):
        self.is_later = True
        self.must(self.unproven is None, self.unproven, "no whole row of the first format follows this erased one")
        self.unproven = None

    def row(self, row):
        seq = row["seq"]
        self.events += 1
        self.must(row.get("partition") == "0", seq, "its partition")
        is_proven = True
        if row.get("v") == 2:
            self.begin_later(seq)
            self.row_with_commitments(row)
        else:
            self.must(row.get("v") is None, seq, "an unknown version")
            self.must(not self.is_later, seq, "a row of the first format after later ones")
            if isinstance(row.get("erasure"), str) and row["erasure"] != "":
                self.unproven = seq
                self.old_erased.append(seq)
                is_proven = False
                self.erased.setdefault(row["erasure"], []).append(seq)
            else:
                self.unproven = None
                covered = {
                    name: value
                    for name, value in row.items()
                    if name not in ("hash", "previous_hash") and not (name in LATER_COLUMNS and value is None)
                }
                self.must(digest(row["previous_hash"] + "\n" + canonical(covered)) == row["hash"], seq, "its hash")
        if row.get("change") is not None and is_proven:
            self.explain(row["change"], row["reason"])
        self.ends(seq, row["hash"])

    def row_with_commitments(self, row):
        seq, is_erased = row["seq"], False
        personal = {"hash", "previous_hash", "erasure", "salt", "change_salt"}
        for columns, salt, commitment in GROUPS:
            personal.update(columns)
            given = {name: row[name] for name in columns if row.get(name) is not None}
            if row.get(salt) is not None:
                self.must(has_form(row[salt]), seq, f"the form of its {salt}")
                wanted = digest(row[salt] + "\n" + canonical(given))
                self.must(row.get(commitment) == wanted, seq, f"its {commitment}")
                continue
            if row.get(commitment) is not None:
                is_erased = True
                self.must(has_form(row[commitment]), seq, f"the form of its {commitment}")
            empty = {name: AFTER_ERASURE[name] for name in columns if name in AFTER_ERASURE}
            self.must(given == empty, seq, f"values without {salt}")
        self.must(is_erased == (row.get("erasure") is not None), seq, "its erasure")
        if is_erased:
            self.erased.setdefault(row["erasure"], []).append(seq)
        covered = {name: value for name, value in row.items() if value is not None and name not in personal}
        self.must(digest(row["previous_hash"] + "\n" + canonical(covered)) == row["hash"], seq, "its hash")

    def entry(self, seq, text):
        is_next = self.block is not None and seq == self.block["first_seq"] + len(self.texts)
        self.must(is_next, seq, "an entry that is not of this block")
        self.texts.append(text)

    def end_block(self):
        if self.block is None:
            return
        block, texts = self.block, self.texts
        self.block, self.texts = None, []
        first, last = block["first_seq"], block["last_seq"]
        self.must(len(texts) == last - first + 1, first, "entries of the block are missing")
        covered = [self.covered(first + index, text) for index, text in enumerate(texts)]
        lines = "\n".join([block["previous_hash"], str(first), *covered])
        self.must(digest(lines) == block["hash"], first, "the hash of the block")
        self.events += len(texts)
        self.ends(last, block["hash"])

    def covered(self, seq, text):
        fields = text.split("\t")
        self.must(len(fields) in (3, 5), seq, "the number of its fields")
        self.must("\n" not in text, seq, "a line feed in its text")
        parts, erasures = fields[:1], set()
        for salt, field in zip(fields[1::2], fields[2::2]):
            if salt != "":
                self.must(has_form(salt), seq, "the form of a salt")
                parts.append(digest(salt + "\n" + field))
                continue
            left = json_in(field)
            self.must(set(left) == {"commitment", "erasure"}, seq, "the members of an erased part")
            # Without this, a commitment could be two of them with a tab between.
            self.must(has_form(left.get("commitment")), seq, "the form of a commitment")
            self.must(isinstance(left.get("erasure"), str), seq, "the id of an erasure")
            self.must(field == canonical(left), seq, "the form of an erased part")
            parts.append(str(left.get("commitment")))
            erasures.add(str(left.get("erasure")))
        for erasure in erasures:
            self.erased.setdefault(erasure, []).append(seq)
        if len(fields) == 5 and fields[3] != "":
            self.explain(fields[4], object_in(fields[0]).get("reason"))
        return "\t".join(parts)

    def explain(self, change, reason):
        change = object_in(change)
        action, target = change.get("action"), change.get("target")
        if not isinstance(target, str):
            return
        if action == "audit.erasure-begun":
            self.begun.add(target)
        count = re.fullmatch(r"audit_erased:([0-9]{1,15})", str(reason))
        if action == "audit.erasure-done" and count:
            self.done[target] = int(count[1])

    def checkpoint(self, checkpoint):
        is_known = checkpoint["partition"] == "0" and checkpoint["kind"] in ("sealed", "pruned")
        self.must(is_known, checkpoint["seq"], "the partition or the kind of the checkpoint")
        self.checkpoints.append(checkpoint)
        if self.last is None:
            if checkpoint["kind"] == "pruned":
                self.begin = checkpoint
            return
        is_right = self.hashes.get(checkpoint["seq"]) == checkpoint["hash"]
        self.must(is_right, checkpoint["seq"], "the hash of the checkpoint")

    def end(self, keys):
        self.end_block()
        self.must(self.unproven is None, self.unproven, "no whole row of the first format follows this erased one")
        for erasure, seqs in self.erased.items():
            most = self.done.get(erasure, len(seqs))
            self.must(len(seqs) <= most, seqs[-1], f"more events name the erasure {erasure} than it erased")
        if keys is None:
            return
        is_signed = False
        for checkpoint in self.checkpoints:
            if checkpoint["signature"] is not None:
                is_signed = True
                is_right = is_valid(checkpoint, keys)
                self.must(is_right, checkpoint["seq"], "the signature of the checkpoint")
                if is_right:
                    self.signed.append(checkpoint["seq"])
            else:
                is_allowed = checkpoint["kind"] != "pruned" and not is_signed
                self.must(is_allowed, checkpoint["seq"], "the checkpoint is not signed")
        self.must(is_signed, None, "no checkpoint is signed")

    def not_proven(self):
        """Returns ranges up to an erased row of the first format, from the signed checkpoint before it."""
        ranges = {}
        for seq in self.old_erased:
            before = [one for one in self.signed if self.first <= one < seq]
            ranges[max(before, default=self.first - 1) + 1] = seq
        return ranges.items()

    def unrecorded(self):
        return sum(len(seqs) for erasure, seqs in self.erased.items() if erasure not in self.begun.union(self.done))


def is_valid(checkpoint, keys):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    header_text, payload, signature_text = checkpoint["signature"].split(".")
    header = json_in(decoded(header_text))
    key = keys.get(header.get("kid"))
    stated = {name: checkpoint[name] for name in STATED}
    if key is None or header.get("typ") != "portcullis-checkpoint+jws":
        return False
    if key.get("alg", header.get("alg")) != header.get("alg"):
        return False
    if decoded(payload).decode() != canonical(stated):
        return False
    data, signature = f"{header_text}.{payload}".encode(), decoded(signature_text)
    number = lambda name: int.from_bytes(decoded(key[name]), "big")
    try:
        if header["alg"] == "ES256":
            point = ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1())
            halves = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
            point.public_key().verify(encode_dss_signature(*halves), data, ec.ECDSA(hashes.SHA256()))
        elif header["alg"] == "RS256":
            public = rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
            public.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
        elif header["alg"] in ("EdDSA", "Ed25519"):
            ed25519.Ed25519PublicKey.from_public_bytes(decoded(key["x"])).verify(signature, data)
        else:
            return False
    except InvalidSignature:
        return False
    return True


def main(arguments):
    keys = None
    if "--jwks" in arguments:
        at = arguments.index("--jwks")
        keys = {key["kid"]: key for key in json.loads(Path(arguments[at + 1]).read_text())["keys"]}
        del arguments[at : at + 2]
    files = [f for name in arguments for f in (Path(name).rglob("*.ndjson") if Path(name).is_dir() else [Path(name)])]
    chain = Chain()
    # The names of files are in the order of the chain.
    for file in sorted(files, key=lambda one: one.name):
        for line in file.read_bytes().decode().split("\n"):
            if line != "":
                ((member, value),) = json_in(line).items()
                chain.line(member, value)
        chain.end_block()
        named = NAME.fullmatch(file.name)
        is_whole = named is None or (chain.last or 0) >= int(named[2])
        chain.must(is_whole, chain.last, "the file ends before its name says")
    chain.end(keys)
    chain.must(chain.events > 0, None, "there are no events")
    erased = sum(map(len, chain.erased.values()))
    for seq, what in chain.findings:
        print(f"finding at {seq}: {what}")
    print(f"{chain.events} events from {chain.first} to {chain.last}, {erased} erased, last hash {chain.hash}")
    if chain.unrecorded() > 0:
        print(f"{chain.unrecorded()} of them by erasures that are not in these files")
    for first, last in chain.not_proven():
        print(f"not proven: rows {first} to {last}, because row {last} is an erased one of the first format")
    if keys is not None:
        print(f"signed up to {max(chain.signed, default=0)}: later events could be changed by whoever writes the files")
    return 1 if chain.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
