DASHBOARDS: dict = {}
