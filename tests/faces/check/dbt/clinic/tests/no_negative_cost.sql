SELECT * FROM {{ source('hospital', 'visits') }} WHERE cost < 0
