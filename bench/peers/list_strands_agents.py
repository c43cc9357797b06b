"""strands-agents: the loader its skills plugin uses."""

from clock import report
from strands.vended_plugins.skills import Skill

report(Skill.from_directory)
