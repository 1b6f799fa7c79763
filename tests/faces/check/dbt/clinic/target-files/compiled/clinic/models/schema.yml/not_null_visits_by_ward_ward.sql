
    
    



select ward
from "clinic"."main"."visits_by_ward"
where ward is null


