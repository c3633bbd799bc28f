-- a/x
++ b/x
select 1
