"""agno: its local loader without validation, which takes the standard's `allowed-tools` for an error.

With validation it gives no skill at all as soon as one is wrong in its eyes.
"""

from agno.skills import LocalSkills, Skills
from clock import report

report(lambda root: Skills(loaders=[LocalSkills(root, validate=False)]).get_all_skills())
