"""From a run's folder to metrics.json, figures and report.html."""
from pathlib import Path
from typing import Any
from capture_analysis import metrics
from capture_analysis.analysis import Analysis
def analyse_run(folder: Path) -> dict[str, Any]:
    analysis = Analysis(folder)
    document = metrics.compute(analysis)
    metrics.write(folder, document)
    document["pass"]=metrics.passed(document)
    return document
