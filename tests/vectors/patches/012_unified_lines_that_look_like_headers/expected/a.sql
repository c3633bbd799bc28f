++ b/y
++ b/x
select 1
