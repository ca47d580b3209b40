$env:COMPLETE = "powershell"
recover | Out-String | Invoke-Expression
Remove-Item Env:\COMPLETE
