"""The tasks that this program supports, by their name in a round's manifest. To add one, add a file here and a line
below."""

from device_app.training.tasks.counting import count_task, one_click_of
from device_app.training.tasks.evaluate import evaluate_task
from device_app.training.tasks.full_gradient import full_gradient_task
from device_app.training.tasks.group_gradient import group_gradient_task
from device_app.training.tasks.head_gradient import head_gradient_task
from device_app.training.tasks.mark_news import mark_displayed_task, mark_news_task, marked_nothing
from device_app.training.tasks.multi_view import MULTI_VIEW
from device_app.training.tasks.nearest_prototype import nearest_group_task, nearest_prototype_task
from device_app.training.tasks.recall_gradient import recall_task
from device_app.training.tasks.reported_basis import basis_gradient_task, basis_vote_task
from device_app.training.tasks.split_gradient import split_gradient_task
from device_app.training.tasks.task import TaskKind
from device_app.training.tasks.word_gradient import word_gradient_task

TASKS: dict[str, TaskKind] = {
    "evaluate": TaskKind(evaluate_task, role="ranker", graph="score", held_out=True),
    "recall": TaskKind(recall_task, role="recall", graph="gradient", all_displayed=True, all_negatives=True),
    "full_gradient": TaskKind(full_gradient_task, role="ranker", graph="gradient"),
    "multi_view": MULTI_VIEW,
    "mark_news": TaskKind(mark_news_task, zeros=marked_nothing),
    "mark_displayed": TaskKind(mark_displayed_task, zeros=marked_nothing, all_displayed=True),
    "count": TaskKind(count_task, needs_samples=False, channel="counts", reads_release=False, one_click=one_click_of),
    "group_gradient": TaskKind(group_gradient_task, role="ranker", graph="gradient"),
    "head_gradient": TaskKind(head_gradient_task, role="ranker", graph="table_gradient"),
    "nearest_group": TaskKind(nearest_group_task, role="ranker", graph="score"),
    "nearest_prototype": TaskKind(nearest_prototype_task),
    "basis_gradient": TaskKind(basis_gradient_task),
    "basis_vote": TaskKind(basis_vote_task, held_out=True),
    "word_gradient": TaskKind(word_gradient_task, role="ranker", graph="table_gradient"),
    "split_gradient": TaskKind(split_gradient_task, role="ranker", graph="table_gradient"),
}
