// Lessons by their title: the distiller `rules` names a lesson after what it found, so this is where it looks for one.
CREATE INDEX lesson_title IF NOT EXISTS FOR (l:Lesson) ON (l.tenant, l.title);
