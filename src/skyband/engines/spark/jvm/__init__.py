"""The sieve that runs in Spark's JVM: its Java source, and the jar that the package carries."""

from pathlib import Path
from typing import Final

JAR: Final = Path(__file__).with_name("skyband-sieve.jar")
