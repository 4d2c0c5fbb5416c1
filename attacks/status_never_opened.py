"""Never opens its status pipe, for which a reader waits."""

from support.leaving import leave


def attack(target):
    leave()
