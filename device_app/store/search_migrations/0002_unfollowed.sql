-- Earlier versions left the vector of a topic that was no longer followed.

DELETE FROM meaning
WHERE kind = 'topic' AND name NOT IN (SELECT name FROM stance WHERE kind = 'topic' AND stance = 'follow');
