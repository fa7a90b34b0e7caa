"""The paper's Tables II and III: mean and standard deviation of 3 builds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedMetrics:
    """(mean, standard deviation) of each metric; nDCG below precision in every row, so not the usual nDCG."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    ndcg: tuple[float, float]
    auc: tuple[float, float]


PUBLISHED: dict[str, PublishedMetrics] = {
    "CS-Users": PublishedMetrics((0.4574, 0.0085), (0.0696, 0.0100), (0.3697, 0.0031), (0.7793, 0.0617)),
    "CS-Items": PublishedMetrics((0.1586, 0.0002), (0.1086, 0.0015), (0.1318, 0.0008), (0.5809, 0.0721)),
    "CS-Users-Items": PublishedMetrics((0.1408, 0.0033), (0.1335, 0.0315), (0.1232, 0.0024), (0.5672, 0.0043)),
    "Central DSSM View-1": PublishedMetrics((0.2804, 0.0011), (0.0870, 0.0036), (0.2389, 0.0013), (0.8479, 0.0009)),
    "Central DSSM View-2": PublishedMetrics((0.3980, 0.0025), (0.1501, 0.0009), (0.3401, 0.0035), (0.9202, 0.0011)),
    "FCF": PublishedMetrics((0.3010, 0.0032), (0.1017, 0.0019), (0.2606, 0.0008), (0.8627, 0.0003)),
    "FED-MVMF": PublishedMetrics((0.3223, 0.0017), (0.1193, 0.0041), (0.2797, 0.0038), (0.8833, 0.0017)),
    "FL-DSSM View-1": PublishedMetrics((0.2691, 0.0015), (0.0721, 0.0027), (0.2292, 0.0018), (0.8445, 0.0523)),
    "FL-DSSM View-2": PublishedMetrics((0.2656, 0.0021), (0.0676, 0.0137), (0.2186, 0.0023), (0.8398, 0.0314)),
    "FL-MV-DSSM": PublishedMetrics((0.2845, 0.0034), (0.0805, 0.0113), (0.2369, 0.0104), (0.8490, 0.0033)),
    "SEMI-FL-MV-DSSM": PublishedMetrics((0.3512, 0.0070), (0.1217, 0.0214), (0.3136, 0.0038), (0.8986, 0.0051)),
}
