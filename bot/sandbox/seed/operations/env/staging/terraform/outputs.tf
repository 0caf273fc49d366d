output "lambda_url" {
  description = "Where otel-app reaches the function."
  value       = "https://${terraform_data.function_url.id}.lambda-url.eu-central-1.on.example${var.url_path}"
}

output "function_name" {
  description = "The function's name in the cloud's console."
  value       = terraform_data.function.input.name
}

output "invoke_key" {
  description = "Key for callers that are not in the cluster."
  value       = "key-${terraform_data.function.id}"
  sensitive   = true
}
