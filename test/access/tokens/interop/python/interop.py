"""Signs and verifies access tokens with PyJWT.

Usage: interop.py verify|mint, a JSON document on standard input, another on standard output.
"""

import json
import sys

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm


def verify(document):
    keys = jwt.PyJWKSet.from_dict(document["jwks"])
    verdicts = {}
    for name, token in document["tokens"].items():
        try:
            header = jwt.get_unverified_header(token)
            key = keys[header["kid"]]
            if header["typ"] != "at+jwt":
                raise jwt.InvalidTokenError("typ")
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=document["audience"],
                issuer=document["issuer"],
                options={"require": ["iss", "aud", "sub", "exp", "iat", "jti", "client_id"]},
            )
            verdicts[name] = {"claims": claims}
        except (jwt.PyJWTError, KeyError) as error:
            verdicts[name] = {"error": f"{type(error).__name__}: {error}"}
    return verdicts


def mint(document):
    signers = {
        "ES256": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
        "RS256": (rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
        "EdDSA": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
    }
    keys, tokens = [], {}
    for alg, (private_key, algorithm) in signers.items():
        kid = f"python-{alg}"
        public = algorithm.to_jwk(private_key.public_key(), as_dict=True)
        public.pop("key_ops", None)
        keys.append({**public, "kid": kid, "alg": alg, "use": "sig"})
        headers = {"kid": kid, "typ": "at+jwt"}
        tokens[alg] = jwt.encode(document["claims"], private_key, algorithm=alg, headers=headers)
    return {"jwks": {"keys": keys}, "tokens": tokens}


if __name__ == "__main__":
    act = {"verify": verify, "mint": mint}[sys.argv[1]]
    json.dump(act(json.load(sys.stdin)), sys.stdout)
