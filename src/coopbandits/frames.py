"""Results as dataframes. pandas, which an extra brings, is imported when one is asked for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coopbandits.arrays import BoolArray
from coopbandits.errors import MissingExtraError

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame  # noqa: PLC0414 (exported)


def frame(columns: Mapping[str, Any], absent: Mapping[str, BoolArray] | None = None) -> "DataFrame":
    """Return columns of one length as a dataframe.

    Args:
        columns: By name, in order.
        absent: Where whole numbers are missing, by column; such a column is of type Int64.
    """
    try:
        import pandas  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "pandas is not installed, and to_frame() returns its dataframes; try: "
            "pip install 'coopbandits[lab]'"
        ) from error
    made = pandas.DataFrame(dict(columns))
    for name, missing in (absent or {}).items():
        made[name] = made[name].astype("Int64").mask(missing)
    return made
