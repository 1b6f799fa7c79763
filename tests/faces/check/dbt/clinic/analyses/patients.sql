SELECT {% for w in ['north', 'south'] %}COUNT(*) FILTER (region = '{{ w }}') AS {{ w }},
       {% endfor %}COUNT(*) AS n
FROM {{ source('hospital', 'patients') }}
