"""google-adk: its listing of frontmatter, which is less work than its loading of whole skills."""

from clock import report
from google.adk.skills import list_skills_in_dir

report(list_skills_in_dir)
