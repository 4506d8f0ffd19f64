"""What signing and verifying tokens costs PyJWT with cryptography (OpenSSL) on this machine.

Arguments: seconds for each operation. Prints one JSON object a line: first the version, then an
operation each, with the ids of the benchmark. A token that does not verify, or a forged one that
does, ends the program with a traceback and status 1.
"""

import json
import platform
import sys
import time
import uuid

import cryptography
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER = "https://gateway.bench.test"
SUBJECT = "bench-caller"
RSA_BITS = 2048
# Time in seconds between two readings of the clock.
SLICE = 0.01


def issue(algorithm, key):
    now = int(time.time())
    claims = {
        "iss": ISSUER, "aud": ISSUER, "sub": SUBJECT, "client_id": "bench", "roles": ["writer"],
        "iat": now, "exp": now + 900, "jti": str(uuid.uuid4()),
    }
    return jwt.encode(claims, key, algorithm, headers={"kid": "bench", "typ": "at+jwt"})


def verify(algorithm, key, token):
    required = {"require": ["exp", "iat", "iss", "aud", "sub"]}
    claims = jwt.decode(
        token, key, [algorithm], audience=ISSUER, issuer=ISSUER, options=required
    )
    if claims["sub"] != SUBJECT:
        raise ValueError("another subject")


def forged(token):
    at = len(token) - 10
    return token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :]


def measure(name, seconds, operation):
    """Repeats an operation for so long and prints what one of them took."""
    size = 1
    while True:
        start = time.perf_counter()
        for _ in range(size):
            operation()
        if time.perf_counter() - start >= SLICE:
            break
        size *= 2
    operations, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(size):
            operation()
        operations += size
    micros = (time.perf_counter() - start) * 1e6 / operations
    tell(id=name, micros=micros, operations=operations)


def tell(**line):
    print(json.dumps(line), flush=True)


def main():
    seconds = float(sys.argv[1])
    tell(
        version=f"Python {platform.python_version()}, PyJWT {jwt.__version__}, "
        f"cryptography {cryptography.__version__}"
    )
    measure("uuid", seconds, lambda: (str(uuid.uuid4()), str(uuid.uuid4())))
    keys = {
        "ES256": ec.generate_private_key(ec.SECP256R1()),
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS),
        "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    }
    for algorithm, key in keys.items():
        public = key.public_key()
        token = issue(algorithm, key)
        try:
            verify(algorithm, public, forged(token))
        except jwt.InvalidSignatureError:
            pass
        else:
            raise ValueError(f"{algorithm}: a forged token verifies")
        measure(f"issue-{algorithm}", seconds, lambda: issue(algorithm, key))
        measure(f"verify-{algorithm}", seconds, lambda: verify(algorithm, public, token))


main()
