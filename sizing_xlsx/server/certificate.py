"""A certificate of one's own, for trying the add-in on one machine."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from .files import write_whole

DAYS = 90


def check_pair(cert: Path, key: Path) -> None:
    """ValueError, with the setting, the file and what is right, unless they are a certificate and its key in PEM."""
    for file in (cert, key):
        file.open("rb").close()  # one that may not be read: OpenSSL's error has no name
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(cert)
    except ssl.SSLError:
        raise ValueError(f"cert is {cert}, which holds no certificate; it must be a TLS certificate in PEM") from None
    try:
        context.load_cert_chain(cert, key, password="")  # without one OpenSSL asks at the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"key is {key}, which belongs to another certificate than {cert}; name its own") from None
        words = "it must be the certificate's private key in PEM, without a password"
        raise ValueError(f"key is {key}, which holds no private key that can be read; {words}") from None


def self_signed(folder: Path, names: tuple[str, ...] = ("localhost",)) -> tuple[Path, Path]:
    """Certificate and key in a folder, made anew where there is none or it has run out."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    cert, key = folder / "cert.pem", folder / "key.pem"
    now = datetime.datetime.now(datetime.UTC)
    if cert.exists() and key.exists():
        until = x509.load_pem_x509_certificate(cert.read_bytes()).not_valid_after_utc
        if until > now + datetime.timedelta(days=7):
            return cert, key
    secret = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    hosts = [*map(x509.DNSName, names), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    write_whole(
        key,
        secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
    write_whole(cert, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return cert, key
