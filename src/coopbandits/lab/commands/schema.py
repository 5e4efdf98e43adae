"""`coop schema`: the JSON Schema of experiments."""

import argparse
import json
import sys
from pathlib import Path

from coopbandits.lab.experiments.schema import experiment_schema
from coopbandits.lab.experiments.whole_files import write_whole
from coopbandits.lab.letters import is_narrow


def main(options: argparse.Namespace) -> int:
    """Print or write the schema."""
    escape = options.out is None and is_narrow(sys.stdout)
    text = json.dumps(experiment_schema(), indent=1, ensure_ascii=escape) + "\n"
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_whole(Path(options.out), text.encode())
    return 0
