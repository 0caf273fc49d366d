# Values of staging. A promotion changes image_uri; everything else is changed by people.
image_uri = "registry.sandbox.example/lambda-app:0.9.0"
memory_mb = 256
