"""A certificate authority of the test: certificates for servers and users, expired ones too."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """Files of one certificate with its key.

    ``both`` has the two in one file; ``store`` is them in PKCS#12.
    """

    certificate: Path
    key: Path
    both: Path
    store: Path


class Authority:
    """An authority in a folder: ``ca`` is its certificate, ``truststore`` the same for Java."""

    def __init__(self, folder: Path, store_password: str, name: str = "test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._password = folder, store_password
        self._key = _key()
        self._name = _named(name)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), -1, 30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(_key_id(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self.truststore = folder / "ca.p12"
        trusted = pkcs12.PKCS12Certificate(self._certificate, b"ca")
        encryption = serialization.BestAvailableEncryption(store_password.encode())
        self.truststore.write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))

    def issue(self, name: str, *, expired: bool = False) -> Identity:
        """A certificate for a user of that name, or a server on this machine."""
        key = _key()
        begin, end = (-20, -10) if expired else (-1, 20)
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        issuer = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        certificate = (
            _builder(_named(name), self._name, key.public_key(), begin, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer.value),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return self._write(f"{name}-expired" if expired else name, key, certificate)

    def _write(self, name: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> Identity:
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        found = Identity(*(self._folder / f"{name}.{end}" for end in ("pem", "key", "both", "p12")))
        found.certificate.write_bytes(pem)
        found.key.write_bytes(secret)
        found.both.write_bytes(secret + pem)
        encryption = serialization.BestAvailableEncryption(self._password.encode())
        found.store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(), key, certificate, [self._certificate], encryption
            )
        )
        return found


def _key() -> rsa.RSAPrivateKey:
    # MySQL 8.0.15 shakes no hands over elliptic curves.
    return rsa.generate_private_key(65537, 2048)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPublicKey, begin: int, end: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begin * _DAY)
        .not_valid_after(now + end * _DAY)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_id(key: rsa.RSAPublicKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
