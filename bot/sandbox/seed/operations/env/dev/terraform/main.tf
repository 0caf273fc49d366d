# The function that otel-app calls, in dev.
#
# env.auto.tfvars says which image it runs; a promotion changes `image_uri` there and nothing else.
# terraform_data stands in for the cloud's own resources, so that this runs without an account.

terraform {
  required_version = ">= 1.6"

  backend "http" {
    address        = "https://state.sandbox.example/state/acme/dev"
    lock_address   = "https://state.sandbox.example/state/acme/dev"
    unlock_address = "https://state.sandbox.example/state/acme/dev"
    lock_method    = "LOCK"
    unlock_method  = "UNLOCK"
    retry_max      = 1
  }
}

resource "terraform_data" "execution_role" {
  input = {
    name    = "otel-lambda-dev"
    allowed = ["logs:PutLogEvents"]
  }
}

# A new image is an update in place: the function keeps its id, and with it its URL.
resource "terraform_data" "function" {
  input = {
    name      = "otel-lambda-dev"
    image_uri = var.image_uri
    memory_mb = var.memory_mb
    role      = terraform_data.execution_role.id
  }
}

# The id exists only after the first apply. Raising url_generation replaces it: another URL.
resource "terraform_data" "function_url" {
  input            = { authorization = "NONE" }
  triggers_replace = [terraform_data.function.id, var.url_generation]
}

# The account's quotas, kept by the platform team. Read after the function changed, so during the apply.
data "terraform_remote_state" "account" {
  backend = "http"
  config = {
    address   = "https://state.sandbox.example/state/acme/account"
    retry_max = 0
  }

  depends_on = [terraform_data.function]
}

# Calls the new version once. It runs after the function was changed, so a failure here is a half-done apply.
resource "terraform_data" "smoke_test" {
  input = var.image_uri

  lifecycle {
    precondition {
      condition     = var.broken ? startswith(terraform_data.function.output.image_uri, "never:") : true
      error_message = "The smoke test of ${terraform_data.function.output.image_uri} answered 502 Bad Gateway."
    }
    precondition {
      condition     = var.memory_mb <= data.terraform_remote_state.account.outputs.max_memory_mb
      error_message = "The account does not allow ${var.memory_mb} MB for one function."
    }
  }
}
